"""A server that prepares images for a vision-language model, and its load: requests a second.

    python examples/vlm/server.py [PHOTOS] [--threads 1,4,8,16] [--seconds 3] [--quick]

Each thread of the server answers one connection after another over HTTP/1.1: the body of a request is an
image, and the rows of Qwen2-VL's processor are made of it, which a real server would give to its model. Next
to stoker's processor runs that of transformers, if it is installed (pip install transformers torch
torchvision pillow). As many clients as threads send the photographs, from a process of their own. Without
PHOTOS, some are made.
"""

import argparse
import http.client
import http.server
import io
import json
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import stoker

CONFIG = {"image_processor_type": "Qwen2VLImageProcessor", "max_pixels": 1003520}


def of_stoker():
    """Returns a function from an encoded image to (rows, grid): one call, without the interpreter's lock."""
    processor = stoker.processor(CONFIG)

    def process(image):
        inputs = processor(image)
        return inputs["pixel_values"], inputs["image_grid_thw"]

    return process


def of_transformers():
    """Returns the same function of transformers."""
    import torch
    import transformers
    from PIL import Image

    torch.set_num_threads(1)  # a request has one thread
    processor = transformers.Qwen2VLImageProcessor(max_pixels=CONFIG["max_pixels"])

    def process(image):
        inputs = processor(Image.open(io.BytesIO(image)).convert("RGB"), return_tensors="pt")
        return inputs["pixel_values"], inputs["image_grid_thw"]

    return process


def handler(process):
    """Returns a class of handlers that call `process`."""

    class Handler(http.server.BaseHTTPRequestHandler):
        """Answers requests with the shape of an image's rows."""

        protocol_version = "HTTP/1.1"  # keeps connections open
        disable_nagle_algorithm = True
        wbufsize = -1  # sends an answer's header and body at once

        def do_POST(self) -> None:
            """Prepares the image; one that cannot be decoded is the client's error."""
            image = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                rows, grid = process(image)
                self.answer(200, {"rows": list(rows.shape), "grid": grid.tolist()})
            except (stoker.Error, OSError) as error:  # Pillow's are OSErrors
                self.answer(400, {"error": str(error)})

        def answer(self, status: int, value: dict[str, object]) -> None:
            """Sends JSON."""
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            """Prints nothing for a request."""

    return Handler


def serve(process, threads):
    """Starts that many threads, which answer connections to the returned port of this machine."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=128)
    handle = handler(process)

    def run():
        while True:
            connection, address = listening.accept()
            with connection:
                handle(connection, address, None)

    for _ in range(threads):
        threading.Thread(target=run, daemon=True).start()
    return listening.getsockname()[1]


def load(port, clients, seconds, photos):
    """Sends photographs from that many clients, and prints how many were answered, and after how long."""
    paths = [
        path for path in sorted(pathlib.Path(photos).rglob("*")) if path.suffix.lower() in (".jpg", ".jpeg")
    ]
    images = [path.read_bytes() for path in paths[:64]]
    if not images:
        raise SystemExit(f"{photos} has no JPEGs")
    taken = [[] for _ in range(clients)]
    begin = threading.Barrier(clients)

    def run(number):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.connect()
        begin.wait()
        end = time.perf_counter() + seconds
        while (sent := time.perf_counter()) < end:
            connection.request("POST", "/", images[(number + clients * len(taken[number])) % len(images)])
            response = connection.getresponse()
            answer = json.loads(response.read())
            if response.status != 200:
                raise SystemExit(answer["error"])
            taken[number].append((time.perf_counter() - sent) * 1e3)
        connection.close()

    running = [threading.Thread(target=run, args=(number,)) for number in range(clients)]
    started = time.perf_counter()
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    each = sorted(time for client in taken for time in client)
    print(
        json.dumps(
            {
                "rate": len(each) / (time.perf_counter() - started),
                "median": statistics.median(each),
                "p99": each[len(each) * 99 // 100],
            }
        )
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("photos", nargs="?", help="a folder of JPEGs")
    parser.add_argument("--threads", default="1,4,8,16")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--quick", action="store_true", help="half a second with one thread and with four")
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)  # of the process of clients
    args = parser.parse_args()
    if args.port:
        return load(args.port, int(args.threads), args.seconds, args.photos)
    if args.quick:
        args.threads, args.seconds = "1,4", 0.5
    with tempfile.TemporaryDirectory() as folder:
        if args.photos is None:
            made = [sys.executable, "-m", "stoker", "synth", folder, "--count", "64"]
            subprocess.run(made, check=True, capture_output=True)
            args.photos = folder
        ways = {"stoker": of_stoker}
        try:
            import transformers

            ways[f"transformers {transformers.__version__}"] = of_transformers
        except ImportError as error:
            print(f"transformers: left out: {error}")
        for threads in (int(number) for number in args.threads.split(",")):
            for name, make in ways.items():
                port = serve(make(), threads)
                clients = [sys.executable, __file__, args.photos, "--port", port, "--threads", threads]
                clients += ["--seconds", args.seconds]
                done = subprocess.run([str(word) for word in clients], check=True, stdout=subprocess.PIPE)
                seen = json.loads(done.stdout)
                rate, median, p99 = (seen[key] for key in ("rate", "median", "p99"))
                print(
                    f"{name}, {threads} threads: {rate:.1f} requests/s, after {median:.1f} ms (median), "
                    f"{p99:.1f} ms (99 %)"
                )
    return None


if __name__ == "__main__":
    main()
