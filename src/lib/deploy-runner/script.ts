// How the deploy script is called, and what its exit status says.

/** Nothing but the name of a service that this node has goes into it. */
export function buildDeployArgs(service: string): [string, string] {
  return ['--force-recreate', service];
}

export function buildDeployEnv(node: string, checkout: string): Record<string, string> {
  return { REEVE_NODE: node, REEVE_CHECKOUT: checkout };
}

const steps: Readonly<Record<number, string>> = {
  1: 'preflight',
  2: 'gate',
  3: 'execute',
  4: 'verify',
  5: 'sudo hand-off',
};

export function explainExit(code: number): string {
  const step = steps[code];
  return step === undefined ? `exit status ${code}` : `exit status ${code} (${step})`;
}
