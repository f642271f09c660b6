/** Processes with this worker in their environment, which have not ended. */
export function processesOf(worker: string): number[] {
  return processesWith(`SVC_WORKER_ID=${worker}`);
}

/** Processes with this variable in their environment, which have not ended. */
export function processesWith(variable: string): number[] {
  return [...Deno.readDirSync("/proc")].map(({ name }) => Number(name)).filter((pid) => {
    try {
      const hasIt = Deno.readTextFileSync(`/proc/${pid}/environ`).includes(`${variable}\0`);
      // One that has ended and was not waited for is none.
      return hasIt && !/^State:\s+Z/m.test(Deno.readTextFileSync(`/proc/${pid}/status`));
    } catch {
      return false;
    }
  });
}
