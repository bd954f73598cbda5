# A PE of a job whose PE 1 has a private heap; PE 0 says so when it starts.
# sh apart_test.sh JOB
if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then ulimit -f 65536; fi
if [ "$OMPI_COMM_WORLD_RANK" != 0 ]; then exec "$1" --startup quiet; fi
said="$(mktemp)"
"$1" --startup summary 2>"$said" || exit 1
cat "$said" >&2
grep -q 'heaps apart (PE 1: its heap is private)' "$said"
status=$?
rm "$said"
exit $status
