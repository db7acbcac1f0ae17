# The world outside: a loudspeaker. Slow enough to be interrupted in the middle.
echo "The newsletter is out" >> outside/loudspeaker.txt
sleep "${ANNOUNCE_SECONDS:-0}"
echo announced
