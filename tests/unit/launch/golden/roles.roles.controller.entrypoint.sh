#!/bin/sh
serve
