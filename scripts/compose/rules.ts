/** What Capstan asks of its compose file, beyond the specification. */
import { type ComposeProject, type ComposeService, isTask } from './project.ts';

type Rule = (service: ComposeService, name: string, project: ComposeProject) => string | null;

const fixedTag = /(?::v?\d+(?:\.\d+)+[\w.-]*|@sha256:[0-9a-f]{64})$/;
const secretName = /(PASSWORD|PWD|SECRET|TOKEN|KEYS?)$/;
/** They begin as root, to own their volume, and change the user themselves. */
const startsAsRoot = /^postgres:/;

const rules: readonly Rule[] = [
  ({ image }) => (fixedTag.test(image) ? null : `${image} has no fixed version`),
  ({ environment }) => {
    const literal = Object.entries(environment).filter(
      ([variable, value]) =>
        secretName.test(variable) && value !== null && !value.startsWith('/run/secrets/'),
    );
    return literal.length === 0
      ? null
      : `a secret stands in the environment: ${literal.map(([variable]) => variable).join(', ')}`;
  },
  ({ restart, profiles }, name, project) => {
    const wanted = profiles.length > 0 ? /^no$/ : isTask(name, project) ? /^on-failure/ : /^unless-stopped$/;
    return wanted.test(restart ?? '') ? null : `restart is ${restart ?? 'not set'}`;
  },
  ({ healthcheck, profiles }, name, project) =>
    healthcheck === undefined && profiles.length === 0 && !isTask(name, project) ? 'no healthcheck' : null,
  ({ depends_on }) => {
    const loose = Object.entries(depends_on).filter(([, { condition }]) => condition === 'service_started');
    return loose.length === 0
      ? null
      : `waits only for the start of ${loose.map(([other]) => other).join(', ')}`;
  },
  ({ security_opt }) =>
    security_opt.includes('no-new-privileges:true') ? null : 'no no-new-privileges:true in security_opt',
  ({ image, cap_drop }) =>
    startsAsRoot.test(image) || cap_drop.includes('ALL') ? null : 'keeps capabilities',
  ({ image, user, read_only }) =>
    image.startsWith('capstan:') && !(user === '10001:10001' && read_only)
      ? 'is not read-only, or not the user 10001:10001'
      : null,
  ({ logging }) => (logging?.driver === 'local' ? null : 'its log grows without a limit'),
  ({ ports }) =>
    ports.every(({ host_ip }) => host_ip === '127.0.0.1') ? null : 'publishes a port to all networks',
  ({ volumes }) => (volumes.every(({ type }) => type === 'volume') ? null : 'mounts a folder of the machine'),
];

/** @returns a line for each fault */
export function findFaults(project: ComposeProject): readonly string[] {
  return Object.entries(project.services).flatMap(([name, service]) =>
    rules.flatMap((rule) => {
      const fault = rule(service, name, project);
      return fault === null ? [] : [`${name}: ${fault}`];
    }),
  );
}
