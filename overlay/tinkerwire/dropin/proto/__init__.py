"""The protobuf messages of the wire and their conversions, under the module names of the official SDK."""
