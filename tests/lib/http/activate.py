#!/usr/bin/python3
"""activate.py - runs a program with a listening TCP socket, as the service manager does

usage: activate.py HOST PROGRAM [ARG...]
"""
import os
import socket
import sys

s = socket.socket()
s.bind((sys.argv[1], 0))
s.listen()
if s.fileno() == 3:
    os.set_inheritable(3, True)
else:
    os.dup2(s.fileno(), 3)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:])
