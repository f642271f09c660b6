// Preloaded into a server that is measured: how long its event loop lets nobody else in. The longest turn so far stands in the file that
// BENCH_TURNS names; SIGUSR2 begins anew. A turn counts as the processor time of this thread, which no busy machine makes longer.
const file = Deno.env.get("BENCH_TURNS") ?? "";
let longest = 0;

function onProcessorMs(): number {
  return Number(Deno.readTextFileSync("/proc/thread-self/schedstat").split(" ")[0]) / 1e6;
}

let before = onProcessorMs();
const timer = setInterval(() => {
  const now = onProcessorMs();
  if (now - before > longest) {
    longest = now - before;
    Deno.writeTextFileSync(file, String(longest));
  }
  before = onProcessorMs();
}, 1);
Deno.unrefTimer(timer);

Deno.addSignalListener("SIGUSR2", () => {
  longest = 0;
  before = onProcessorMs();
  Deno.writeTextFileSync(file, "0");
});
