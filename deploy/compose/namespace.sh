#!/bin/sh
# The namespace of Capstan in Temporal. The address and the name are in the environment.
set -eu
tries=60
until temporal operator cluster health >/dev/null 2>&1; do
  tries=$((tries - 1))
  [ "$tries" -gt 0 ] || { temporal operator cluster health; exit 1; }
  sleep 2
done
temporal operator namespace describe "$TEMPORAL_NAMESPACE" >/dev/null 2>&1 ||
  temporal operator namespace create "$TEMPORAL_NAMESPACE" --retention 168h
