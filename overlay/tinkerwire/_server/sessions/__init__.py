"""Sessions: sessions, models and samplers that live as long as the server process."""
