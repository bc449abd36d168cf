"""The one road to the server: transport, retry policy, backpressure, and the connection that has them all."""
