/** Every command and its source file. Only the file of the called command is loaded, so that startup stays fast. */
import type { Command } from 'commander';
import type { Register } from './command.ts';
import type { Shell } from './shell.ts';

/** In the order of the help text. */
const loaders: Readonly<Record<string, () => Promise<Register>>> = {
  init: async () => (await import('./commands/dev.ts')).registerInitCommand,
  demo: async () => (await import('./demo/demo.ts')).registerDemoCommand,
  dev: async () => (await import('./commands/dev.ts')).registerDevCommand,
  up: async () => (await import('./commands/instances/up.ts')).registerUpCommand,
  server: async () => (await import('./commands/programs.ts')).registerServerCommand,
  worker: async () => (await import('./commands/programs.ts')).registerWorkerCommand,
  migrate: async () => (await import('./commands/programs.ts')).registerMigrateCommand,
  login: async () => (await import('./commands/access.ts')).registerLoginCommand,
  doctor: async () => (await import('./commands/dev.ts')).registerDoctorCommand,
  validate: async () => (await import('./commands/pipelines.ts')).registerValidateCommand,
  submit: async () => (await import('./commands/pipelines.ts')).registerSubmitCommand,
  apply: async () => (await import('./commands/apply.ts')).registerApplyCommand,
  pull: async () => (await import('./commands/apply.ts')).registerPullCommand,
  pipelines: async () => (await import('./commands/pipelines.ts')).registerPipelinesCommand,
  plan: async () => (await import('./commands/pipelines.ts')).registerPlanCommand,
  run: async () => (await import('./commands/runs/start-run.ts')).registerRunCommand,
  rerun: async () => (await import('./commands/runs/start-run.ts')).registerRerunCommand,
  ls: async () => (await import('./commands/runs/runs.ts')).registerListCommand,
  count: async () => (await import('./commands/runs/many-runs.ts')).registerCountCommand,
  export: async () => (await import('./commands/runs/many-runs.ts')).registerExportCommand,
  show: async () => (await import('./commands/runs/runs.ts')).registerShowCommand,
  open: async () => (await import('./commands/runs/runs.ts')).registerOpenCommand,
  events: async () => (await import('./commands/runs/runs.ts')).registerEventsCommand,
  send: async () => (await import('./commands/runs/send.ts')).registerSendCommand,
  pause: async () => (await import('./commands/runs/runs.ts')).registerPauseCommand,
  resume: async () => (await import('./commands/runs/runs.ts')).registerResumeCommand,
  budget: async () => (await import('./commands/runs/runs.ts')).registerBudgetCommand,
  raise: async () => (await import('./commands/runs/many-runs.ts')).registerRaiseCommand,
  cancel: async () => (await import('./commands/runs/runs.ts')).registerCancelCommand,
  schedules: async () => (await import('./commands/schedules.ts')).registerSchedulesCommand,
  hooks: async () => (await import('./commands/runs/hooks.ts')).registerHooksCommand,
  review: async () => (await import('./commands/review.ts')).registerReviewCommand,
  media: async () => (await import('./commands/runs/run-data.ts')).registerMediaCommand,
  capabilities: async () => (await import('./commands/capabilities.ts')).registerCapabilitiesCommand,
  fleet: async () => (await import('./commands/fleet/fleet.ts')).registerFleetCommand,
  hosts: async () => (await import('./commands/fleet/hosts.ts')).registerHostsCommand,
  exec: async () => (await import('./commands/capabilities.ts')).registerExecCommand,
  route: async () => (await import('./commands/capabilities.ts')).registerRouteCommand,
  mcp: async () => (await import('./commands/mcp.ts')).registerMcpCommand,
  capability: async () => (await import('./commands/instances/capability.ts')).registerCapabilityCommand,
  check: async () => (await import('./commands/instances/capability.ts')).registerCheckCommand,
  calls: async () => (await import('./commands/capabilities.ts')).registerCallsCommand,
  costs: async () => (await import('./commands/money.ts')).registerCostsCommand,
  cache: async () => (await import('./commands/runs/run-data.ts')).registerCacheCommand,
  ledger: async () => (await import('./commands/money.ts')).registerLedgerCommand,
  budgets: async () => (await import('./commands/money.ts')).registerBudgetsCommand,
  skills: async () => (await import('./commands/skills.ts')).registerSkillsCommand,
  aliases: async () => (await import('./commands/aliases.ts')).registerAliasesCommand,
  secrets: async () => (await import('./commands/secrets.ts')).registerSecretsCommand,
  publishers: async () => (await import('./commands/capabilities.ts')).registerPublishersCommand,
  webhooks: async () => (await import('./commands/webhooks.ts')).registerWebhooksCommand,
  move: async () => (await import('./commands/move.ts')).registerMoveCommand,
  recover: async () => (await import('./commands/programs.ts')).registerRecoverCommand,
  purge: async () => (await import('./commands/programs.ts')).registerPurgeCommand,
  projects: async () => (await import('./commands/access.ts')).registerProjectsCommand,
  keys: async () => (await import('./commands/access.ts')).registerKeysCommand,
  audit: async () => (await import('./commands/access.ts')).registerAuditCommand,
  sessions: async () => (await import('./commands/access.ts')).registerSessionsCommand,
  completion: async () => {
    const { registerCompletionCommand } = await import('./completion.ts');
    return (program, shell) => registerCompletionCommand(program, shell, registerCommands);
  },
};

/** Registers the command called `name`, or all commands without a name (help, a typing error). */
export async function registerCommands(
  program: Command,
  shell: Shell,
  name: string | undefined,
): Promise<void> {
  const called = name !== undefined && Object.hasOwn(loaders, name) ? loaders[name] : undefined;
  for (const load of called === undefined ? Object.values(loaders) : [called]) (await load())(program, shell);
}
