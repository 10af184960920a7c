"""A worker of tf.data service in its own process. DISPATCHER OP; ends with its stdin."""

import sys

import stoker.tensorflow
import tensorflow as tf

address, op = sys.argv[1:]
stoker.tensorflow.load_ops(op)
service = tf.data.experimental.service
worker = service.WorkerServer(service.WorkerConfig(dispatcher_address=address, heartbeat_interval_ms=100))
print("up", flush=True)
sys.stdin.read()
