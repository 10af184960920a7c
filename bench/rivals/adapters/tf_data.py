"""TensorFlow's tf.data. The fastest way that we know is "fused", by `decode_and_crop_jpeg`."""

from workload import BATCH, MEAN, SIZE, STD

NAME = "tf.data"
DISTRIBUTION = "tensorflow-cpu"
PACKAGES = ("tensorflow-cpu",)
IMPORTS = ("tensorflow",)
VARIANTS = {
    "fused": "not antialiased, fast DCT; eval crops before it resizes",
    "antialiased": "antialiased, fast DCT",
    "naive": "not antialiased, fast DCT; decodes the whole photograph",
    "cache": "not antialiased, fast DCT; cache() keeps all decoded photographs in memory",
}
WORKLOADS = ("train", "train-f32", "train-f16", "eval")


def batches(data, workload, variant):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(data.cores)
    tf.config.threading.set_inter_op_parallelism_threads(data.cores)
    antialias = variant == "antialiased"

    def read(path):
        content = tf.io.read_file(path)
        return tf.io.decode_jpeg(content, channels=3) if variant in ("naive", "cache") else content

    def crop(shape):
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            shape,
            tf.zeros([0, 0, 4]),
            area_range=(0.08, 1),
            aspect_ratio_range=(3 / 4, 4 / 3),
            max_attempts=10,
            use_image_if_no_bounding_boxes=True,
        )
        return tf.concat([begin[:2], size[:2]], 0)

    def train(photo):
        if photo.dtype == tf.string:
            window = crop(tf.image.extract_jpeg_shape(photo))
            image = tf.image.decode_and_crop_jpeg(photo, window, channels=3)
        else:
            top, left, height, width = tf.unstack(crop(tf.shape(photo)))
            image = tf.image.crop_to_bounding_box(photo, top, left, height, width)
        image = tf.image.resize(image, [SIZE, SIZE], "bilinear", antialias=antialias)
        return finished(tf.image.random_flip_left_right(image))

    def evaluated(photo):
        if variant == "fused":
            shape = tf.image.extract_jpeg_shape(photo)
            side = tf.cast(SIZE / 256 * tf.cast(tf.minimum(shape[0], shape[1]), tf.float32), tf.int32)
            window = tf.stack([(shape[0] - side + 1) // 2, (shape[1] - side + 1) // 2, side, side])
            image = tf.image.decode_and_crop_jpeg(photo, window, channels=3)
            return finished(tf.image.resize(image, [SIZE, SIZE], "bilinear"))
        image = photo if photo.dtype == tf.uint8 else tf.io.decode_jpeg(photo, channels=3)
        shape = tf.cast(tf.shape(image)[:2], tf.float32)
        size = tf.cast(tf.round(shape * 256 / tf.reduce_min(shape)), tf.int32)
        image = tf.image.resize(image, size, "bilinear", antialias=antialias)
        top, left = (size[0] - SIZE) // 2, (size[1] - SIZE) // 2
        return finished(tf.image.crop_to_bounding_box(image, top, left, SIZE, SIZE))

    def finished(image):
        if not workload.normalized:
            return tf.saturate_cast(image + 0.5, tf.uint8)
        image = (image / 255 - MEAN) / STD
        return tf.cast(tf.transpose(image, [2, 0, 1]) if workload.planar else image, workload.dtype)

    files = data.files()
    options = tf.data.Options()
    options.threading.private_threadpool_size = data.cores
    options.deterministic = not workload.train
    photos = tf.data.Dataset.from_tensor_slices(files)
    if variant == "cache":
        photos = photos.map(read, num_parallel_calls=tf.data.AUTOTUNE).cache()
    if workload.train:
        photos = photos.shuffle(len(files))
    photos = photos.repeat()
    step = train if workload.train else evaluated
    images = photos.map(
        step if variant == "cache" else lambda path: step(read(path)), num_parallel_calls=tf.data.AUTOTUNE
    )
    yield from images.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE).with_options(options)
