/** Which capabilities and instances may receive a secret, and how much of them one step may name. */
import { secretLimits } from '../contracts/secret.ts';

/** Names of capabilities, or beginnings of names with `*`; hosts, none of them for the project's own instances. */
export interface SecretReceivers {
  readonly capabilities: readonly string[];
  readonly hosts: readonly string[];
}

export interface SizedSecret {
  readonly name: string;
  /** Of its value in UTF-8, as JSON writes it. */
  readonly bytes: number;
}

/** Why the secrets are too large for one step; null: they are not. One alone never is. */
export function describeExcess(secrets: readonly SizedSecret[]): string | null {
  const { bytes, bytesOfStep } = secretLimits;
  const sum = secrets.reduce((total, secret) => total + Math.min(secret.bytes, bytes), 0);
  return sum <= bytesOfStep
    ? null
    : `the step names ${secrets.length} secrets of ${sum} bytes together, and answers are searched for at most ${bytesOfStep}`;
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
