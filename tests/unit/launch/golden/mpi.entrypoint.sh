#!/bin/sh
exec './solve'
