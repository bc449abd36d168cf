"""Custom losses: computed by the client, or sent to the server as a graph."""
