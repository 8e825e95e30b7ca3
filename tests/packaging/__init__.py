"""What is published: wheel and sdist, built, looked into, and installed where nothing else is."""
