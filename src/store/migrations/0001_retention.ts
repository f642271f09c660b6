/** What retention asks for: ended things by their age, and who still refers to an upload. */
export const RETENTION: string[] = [
  `create index task_ended on task (updated_at) where status in ('completed', 'failed', 'cancelled')`,
  `create index bee_run_ended on bee_run (completed_at) where completed_at is not null`,
  `create index outbound_given_up on outbound_message (created_at) where status = 'failed' and due_at is null`,
  `create index inbound_media on inbound_message (media ->> '$.path') where media <> 'null'`,
  `create index outbound_media on outbound_message (media ->> '$.path') where media <> 'null'`,
  `create index upload_age on upload (created_at)`,
];
