"""What can be taken out of the app, and read in again."""
