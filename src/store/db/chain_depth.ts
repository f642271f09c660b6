/** SQL of how many tasks of agents led to a message or a part of it. */
export const DEPTH = `max(inbound_message.depth, coalesce(
        (select max(part.depth) from inbound_message as part where part.merged_into = inbound_message.id), 0))`;
