"""Telling people what became of their jobs: by mail, chat, desktop or webhook, through apprise."""
