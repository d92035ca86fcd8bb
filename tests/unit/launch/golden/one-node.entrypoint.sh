#!/bin/sh
exec 'python3' 'train.py' '--name' 'it'\''s $5'
