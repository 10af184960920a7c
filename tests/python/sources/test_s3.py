"""s3:// against moto's server, and our signatures against botocore's."""

import io
import os
import pathlib
import tarfile

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
from epochs import same, taken  # noqa: E402
from object_server import ObjectServer  # noqa: E402

TRAIN = [stoker.RandomResizedCrop(48)]
KEYS = ["0.tar", "train/a b+c=d&e.tar", "ä/(1)'!~,;:@$.tar", "x//../y%20.tar"]


@pytest.fixture
def environment(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith(("AWS_", "STOKER_HTTP"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return monkeypatch


def use(environment, url, key="AKIDEXAMPLE", secret="wJalrXUtnFEMI/K7MDENG+bPxRfiCY", token=None):
    environment.setenv("AWS_ENDPOINT_URL", url)
    environment.setenv("AWS_ACCESS_KEY_ID", key)
    environment.setenv("AWS_SECRET_ACCESS_KEY", secret)
    if token is not None:
        environment.setenv("AWS_SESSION_TOKEN", token)


@pytest.fixture(scope="module")
def archive(made, tmp_path_factory):
    path = tmp_path_factory.mktemp("s3") / "0.tar"
    source = stoker.image_folder(made)
    with tarfile.open(path, "w") as tar:
        for i in range(12):
            data = pathlib.Path(source.path(i)).read_bytes()
            info = tarfile.TarInfo(f"{i}.jpg")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


@pytest.mark.parametrize("token", [None, "session/token=="])
@pytest.mark.parametrize("key", KEYS)
def test_a_signature_is_botocores(archive, environment, key, token, tmp_path):
    auth = pytest.importorskip("botocore.auth")
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    with ObjectServer(tmp_path) as server:  # it has no such object, and keeps the request
        use(environment, server.url, token=token)
        environment.setenv("AWS_REGION", "eu-north-1")
        with pytest.raises(stoker.NotFoundError):
            stoker.tar([f"s3://bucket/{key}"])
        sent = {name.lower(): value for name, value in server.headers[0].items()}
        request = AWSRequest("GET", server.url + server.targets[0])
        names = ["host", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"]
        for name in names:
            if name in sent:
                request.headers[name] = sent[name]
        request.context["timestamp"] = sent["x-amz-date"]
        signer = auth.S3SigV4Auth(
            Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCY", token), "s3", "eu-north-1"
        )
        signature = signer.signature(
            signer.string_to_sign(request, signer.canonical_request(request)), request
        )
    assert sent["authorization"].endswith(f"Signature={signature}")


@pytest.fixture(scope="module")
def moto():
    server_module = pytest.importorskip("moto.server")
    pytest.importorskip("boto3")
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def client(url, service="s3"):
    import boto3

    return boto3.client(
        service, endpoint_url=url, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
    )


def epoch(source):
    return taken(stoker.Loader(source, TRAIN, batch_size=4, shuffle=True, seed=2))


def test_objects_of_s3(archive, environment, moto):
    s3 = client(moto)
    s3.create_bucket(Bucket="photos")
    wanted = epoch(stoker.tar(str(archive)))
    use(environment, moto)
    for key in KEYS[:3]:
        s3.put_object(Bucket="photos", Key=key, Body=archive.read_bytes())
        same(epoch(stoker.tar([f"s3://photos/{key}"])), wanted)
    with pytest.raises(stoker.NotFoundError, match=r"404 \(NoSuchKey"):
        stoker.tar("s3://photos/none.tar")
    with pytest.raises(stoker.NotFoundError, match=r"404 \(NoSuchBucket"):
        stoker.tar("s3://no-such-bucket/0.tar")


def test_records_of_s3(environment, moto):
    s3 = client(moto)
    s3.create_bucket(Bucket="tokens")
    values = np.arange(3 << 20, dtype="<u4")  # 12 MiB: several requests
    s3.put_object(Bucket="tokens", Key="t.bin", Body=values.tobytes())
    use(environment, moto)
    source = stoker.records("s3://tokens/t.bin", "u4", shape=1 << 18)
    batch = next(iter(stoker.Loader(source, batch_size=12)))
    np.testing.assert_array_equal(batch.ravel(), values)


def test_an_object_that_was_replaced(archive, environment, moto):
    s3 = client(moto)
    s3.create_bucket(Bucket="replaced")
    s3.put_object(Bucket="replaced", Key="0.tar", Body=archive.read_bytes())
    use(environment, moto)
    source = stoker.tar("s3://replaced/0.tar")
    s3.put_object(Bucket="replaced", Key="0.tar", Body=archive.read_bytes()[::-1])
    with pytest.raises(stoker.DataLossError, match="has changed since the source was opened"):
        epoch(source)


def test_signatures_are_checked(archive, environment, moto):
    """moto compares them with botocore's, once it is told to."""
    import json
    import urllib.request

    s3, iam = client(moto), client(moto, "iam")
    s3.create_bucket(Bucket="private")
    s3.put_object(Bucket="private", Key="a b.tar", Body=archive.read_bytes())
    iam.create_user(UserName="reader")
    key = iam.create_access_key(UserName="reader")["AccessKey"]
    policy = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}],
    }
    iam.put_user_policy(UserName="reader", PolicyName="read", PolicyDocument=json.dumps(policy))

    def enforce(after):
        plain = {"Content-Type": "text/plain"}  # moto reads no other body
        request = urllib.request.Request(f"{moto}/moto-api/reset-auth", after, plain)
        urllib.request.urlopen(request).read()

    enforce(b"0")
    try:
        use(environment, moto, key["AccessKeyId"], key["SecretAccessKey"])
        assert len(stoker.tar("s3://private/a b.tar")) == 12
        use(environment, moto, key["AccessKeyId"], "a wrong one")
        with pytest.raises(stoker.PermissionDeniedError, match="SignatureDoesNotMatch"):
            stoker.tar("s3://private/a b.tar")
        use(environment, moto, "AKIAWRONG", "a wrong one")
        with pytest.raises(stoker.PermissionDeniedError, match="InvalidAccessKeyId"):
            stoker.tar("s3://private/a b.tar")
    finally:
        enforce(b"inf")
