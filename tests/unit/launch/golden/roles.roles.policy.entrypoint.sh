#!/bin/sh
exec 'python3' 'policy.py'
