#!/bin/sh
exec 'python3' 'ddp.py'
