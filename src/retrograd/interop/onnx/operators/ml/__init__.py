"""Rules of `ai.onnx.ml`: each file registers its own."""
