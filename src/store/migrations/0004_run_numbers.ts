/** Which run of its task an execution belongs to; 0 for those from before (contract 8.9). */
export const RUN_NUMBERS: string[] = [
  `alter table execution add column run_no integer not null default 0`,
];
