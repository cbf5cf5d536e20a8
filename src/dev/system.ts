/** The systems on which the stack starts: those with process groups and with builds of Temporal's library and Postgres. */

export interface MachineSystem {
  readonly platform: NodeJS.Platform;
  readonly arch: string;
  /** The version of glibc that Node runs with; null without one. */
  readonly glibc: string | null;
}

export function readSystem(): MachineSystem {
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return { platform: process.platform, arch: process.arch, glibc: header.glibcVersionRuntime ?? null };
}

/** @returns the reason why the stack cannot start, with the remedy; null when it can */
export function findUnfit({ platform, arch, glibc }: MachineSystem): string | null {
  if (platform === 'win32')
    return 'Windows itself is not supported: start Capstan in WSL 2, or in containers';
  if (platform !== 'linux' && platform !== 'darwin')
    return `${platform} is not supported: use Linux or macOS`;
  if (arch !== 'x64' && arch !== 'arm64') return `${arch} is not supported: use x64 or arm64`;
  if (platform === 'linux' && glibc === null)
    return "Temporal's library has no build for musl (Alpine): use a Linux with glibc, such as Debian";
  return null;
}
