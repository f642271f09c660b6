/** Lists running processes with this worker in their environment. */
export function listWorkerProcesses(worker: string): number[] {
  return listProcesses(`SVC_WORKER_ID=${worker}`);
}

/** Lists running processes with this variable in their environment. */
export function listProcesses(variable: string): number[] {
  return [...Deno.readDirSync("/proc")].map(({ name }) => Number(name)).filter((pid) => {
    try {
      const hasIt = Deno.readTextFileSync(`/proc/${pid}/environ`).includes(`${variable}\0`);
      // Excludes zombies.
      return hasIt && !/^State:\s+Z/m.test(Deno.readTextFileSync(`/proc/${pid}/status`));
    } catch {
      return false;
    }
  });
}
