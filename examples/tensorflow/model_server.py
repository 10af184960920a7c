"""A stand-in for TensorFlow Serving: serves a SavedModel over HTTP, with the same flags, URL and JSON.

It loads the model with TensorFlow alone, and runs one request at a time. In production run
    tensorflow_model_server --model_base_path=FOLDER --model_name=photographs --rest_api_port=8501
"""

import argparse
import base64
import http.server
import json

import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
parser.add_argument("--model_base_path", required=True, help="folder with one folder for each version")
parser.add_argument("--model_name", default="photographs")
parser.add_argument("--rest_api_port", type=int, default=0, help="0: any port that is free, which is printed")
options = parser.parse_args()
newest = max(tf.io.gfile.listdir(options.model_base_path), key=lambda version: int(version.strip("/")))
model = tf.saved_model.load(f"{options.model_base_path}/{newest}")


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers requests for predictions."""

    protocol_version = "HTTP/1.1"  # keeps connections open
    disable_nagle_algorithm = True
    wbufsize = -1  # sends an answer's header and body at once

    def do_POST(self) -> None:
        """Calls the signature that the request names."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            if self.path != f"/v1/models/{options.model_name}:predict":
                raise KeyError(f"no model at {self.path}")
            function = model.signatures[request.get("signature_name", "serving_default")]
            rows = tf.constant([base64.b64decode(row["b64"]) for row in request["instances"]])
            (name,) = function.structured_input_signature[1]
            (scores,) = function(**{name: rows}).values()
            self.answer(200, {"predictions": scores.numpy().tolist()})
        except (KeyError, ValueError, tf.errors.OpError) as error:
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


server = http.server.HTTPServer(("127.0.0.1", options.rest_api_port), Handler)
print(server.server_port, flush=True)
server.serve_forever()
