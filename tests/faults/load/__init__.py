"""A queue under load from processes, what is done to it meanwhile, and the account of what came of every message.

`worker` what each process does · `journal` what it writes down of each call · `run` the processes · `injury` what is
done to them and to the server · `account` whether every promise was kept · `soak` all of it at once.
"""
