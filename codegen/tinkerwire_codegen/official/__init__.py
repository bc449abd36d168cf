"""What a released SDK says of the wire, read without running it, against what the contract says."""
