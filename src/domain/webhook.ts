/** An event of the journal, or all that begin alike: `task.*`, `execution.failed`, `*` (contract 11). */
export const EVENT_PATTERN = /^(\*|[a-z]+\.\*|[a-z]+\.[a-z_]+)$/;
