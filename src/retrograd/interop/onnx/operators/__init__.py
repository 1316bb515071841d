"""The rules of ONNX's operators, by topic."""
