// Preloaded into the measured server. Records the longest turn of its event loop in the file BENCH_TURNS: processor time of
// this thread, which other load does not affect, and wall time including waits. SIGUSR2 resets it.
const file = Deno.env.get("BENCH_TURNS") ?? "";
let longest = { processorMs: 0, wallMs: 0 };

function readTimes(): { processorMs: number; wallMs: number } {
  const processorMs = Number(Deno.readTextFileSync("/proc/thread-self/schedstat").split(" ")[0]) / 1e6;
  return { processorMs, wallMs: performance.now() };
}

let before = readTimes();
const timer = setInterval(() => {
  const { processorMs, wallMs } = readTimes();
  const turn = { processorMs: processorMs - before.processorMs, wallMs: wallMs - before.wallMs };
  if (turn.processorMs > longest.processorMs || turn.wallMs > longest.wallMs) {
    longest = {
      processorMs: Math.max(turn.processorMs, longest.processorMs),
      wallMs: Math.max(turn.wallMs, longest.wallMs),
    };
    Deno.writeTextFileSync(file, JSON.stringify(longest));
  }
  before = readTimes();
}, 1);
Deno.unrefTimer(timer);

Deno.addSignalListener("SIGUSR2", () => {
  longest = { processorMs: 0, wallMs: 0 };
  before = readTimes();
  Deno.writeTextFileSync(file, JSON.stringify(longest));
});
