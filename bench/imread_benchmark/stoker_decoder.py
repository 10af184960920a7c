"""stoker.decode_image as a decoder of imread-benchmark."""

from imread_benchmark.decoders import BaseDecoder


class StokerDecoder(BaseDecoder):
    """Decodes on the calling thread."""

    name = "stoker"
    package_name = "stoker"

    def decode(self, data):
        import stoker

        return stoker.decode_image(data)

    def decode_path(self, path):
        import stoker

        return stoker.decode_image(path)
