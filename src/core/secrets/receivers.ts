/** Which capabilities and instances may receive a secret. */

/** Names of capabilities, or beginnings of names with `*`; hosts, none of them for the project's own instances. */
export interface SecretReceivers {
  readonly capabilities: readonly string[];
  readonly hosts: readonly string[];
}

/** Whether a capability is one of the names, or begins as one that ends with `*`. */
export function isForCapability(
  { capabilities }: Pick<SecretReceivers, 'capabilities'>,
  capability: string,
): boolean {
  return capabilities.some((pattern) =>
    pattern.endsWith('*') ? capability.startsWith(pattern.slice(0, -1)) : capability === pattern,
  );
}

interface Receiver {
  readonly endpoint: string;
  /** The project that registered it. */
  readonly owner_project?: string | undefined;
}

function matchesHost(pattern: string, { host, hostname }: URL): boolean {
  const seen = /:\d+$/.test(pattern) ? host : hostname;
  return pattern.startsWith('*.') ? seen.endsWith(pattern.slice(1)) : seen === pattern;
}

/**
 * Whether an instance may receive a secret of a project. All projects share one registry, so an instance of another
 * project may have the capability: without hosts, only the project's own instances receive it; with hosts, every
 * instance there, and no other.
 */
export function mayReceive(
  { hosts }: Pick<SecretReceivers, 'hosts'>,
  projectId: string,
  { endpoint, owner_project }: Receiver,
): boolean {
  if (hosts.length === 0) return owner_project === projectId;
  const url = new URL(endpoint);
  return hosts.some((pattern) => matchesHost(pattern, url));
}
