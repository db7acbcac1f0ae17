# A page as HTML: its first line is the title. Slow, as such things are.
sleep 0.3
printf '<!doctype html>\n<title>%s</title>\n' "$(head -n 1 "$1")"
sed -e '1s/.*/<h1>&<\/h1>/' -e '2,$s/.*/<p>&<\/p>/' "$1"
