#!/bin/sh
# A key that may register one capability and transfer files. It is made once and kept for the next start.
set -eu
file=/var/lib/capstan/capability/key
[ ! -s "$file" ] || exit 0
umask 077
CAPSTAN_API_KEY=$(cat /var/lib/capstan/admin/key)
export CAPSTAN_API_KEY
node /app/bin/capstan.mjs keys create "$1" \
  --scope "capability:register:$1" --scope media:read --scope media:write --json |
  node -p 'JSON.parse(fs.readFileSync(0, "utf8")).key' >"$file.new"
mv "$file.new" "$file"
