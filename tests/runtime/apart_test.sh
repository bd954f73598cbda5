# A PE of a job whose PE 1 has a private heap, and of which PE 0 says so when it starts.
# sh apart_test.sh JOB
if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then
  ulimit -f 65536
  export ESKER_TEST_REACH=3
else
  export ESKER_TEST_REACH=2
fi
if [ "$OMPI_COMM_WORLD_RANK" != 0 ]; then exec "$1" --huge-pages false --startup quiet; fi
said="$(mktemp)"
"$1" --huge-pages false --startup summary 2>"$said"
status=$?
cat "$said" >&2
grep -q 'heaps apart (PE 1: its heap is private)' "$said" || status=1
rm "$said"
exit $status
