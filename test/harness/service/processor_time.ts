import process from "node:process";

/** Starts to count the time of this process on the processor, in ms: other programs do not make it longer. */
export function countProcessorMs(): () => number {
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  };
}
