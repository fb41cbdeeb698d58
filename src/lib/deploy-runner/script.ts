// How the deploy script is called, and what its exit status says.

/** Nothing but the name of a service that this node has goes into it. */
export function buildDeployArgs(service: string): [string, string] {
  return ['--force-recreate', service];
}

export type DeploySettings = {
  node: string;
  checkout: string;
  /** Where the machine's own compose files and variables are. */
  config: string;
  verifyTimeoutMs: number;
};

/** All that the script has to know besides; its flags are for people. */
export function buildDeployEnv({ node, checkout, config, verifyTimeoutMs }: DeploySettings) {
  return {
    REEVE_NODE: node,
    REEVE_CHECKOUT: checkout,
    REEVE_HOMELAB_CONFIG: config,
    DEPLOY_VERIFY_SECS: String(Math.ceil(verifyTimeoutMs / 1000)),
  };
}

/** What the script and all that it starts is known by, should it be left alone: an approval is run once, ever. */
export function buildDeployMark(key: string) {
  return { REEVE_ACTION: key };
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
