#!/bin/sh
# What we had before: every page again, whatever changed. It takes a while.
set -e
mkdir -p site
for page in pages/*.txt; do
  name=$(basename "$page" .txt)
  sh render.sh "$page" > "site/$name.html"
done
sh contents.sh site/*.html > site/contents.txt
