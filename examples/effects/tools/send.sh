# The world outside: a mail server that knows the keys of what it has sent.
mkdir -p outside/sent
[ -e "outside/sent/$2" ] || cp "$1" "outside/sent/$2"
echo "sent: $2"
