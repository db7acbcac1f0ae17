# The titles of pages, in order.
for page in "$@"; do
  sed -n 's/.*<title>\(.*\)<\/title>.*/\1/p' "$page"
done | sort
