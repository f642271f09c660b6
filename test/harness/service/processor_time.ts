import process from "node:process";

/** Starts to measure this process's CPU time in ms, which other programs do not affect. */
export function countProcessorMs(): () => number {
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  };
}
