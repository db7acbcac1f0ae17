# A service that answers the third time it is asked.
mkdir -p outside
echo asked >> outside/weather.log
[ "$(wc -l < outside/weather.log)" -ge 3 ] || { echo "503 try later" >&2; exit 1; }
echo "Sunny, for once."
