/**
 * Owns: which release of the Temporal CLI is used, and its checksums. They are pinned here, and not read beside the
 * archive: a mirror that serves another archive cannot serve a matching checksum with it.
 */

export type Release = {
  readonly version: string;
  /** Lower-case hex SHA-256 of each platform's archive, by the release's own names. */
  readonly sha256: Readonly<Partial<Record<string, string>>>;
};

/** Its development server is Temporal 1.32.0. The wrapper module builds the same version. */
export const RELEASE: Release = {
  version: "1.9.1",
  sha256: {
    linux_amd64: "09a0326a51db84d02735e53542b9ebd8c4758daf47482a9ab0abce15844e60d5",
    linux_arm64: "6c57c352d52fc3df34412376fd9ba6f74b7e3ace8e426e6cba8600156d36a145",
    darwin_amd64: "48cdd6c84c56e27ae8e4d9a47052b89289a9c552dee029b49dd312c6fb72873f",
    darwin_arm64: "41e0425378fcb4fb5766340b97435e20fe47bbff2d7bf644ec2d51f7662b7c56",
  },
};

/** The base address of the releases; a mirror has the same paths. */
export const DOWNLOADS = "https://github.com/temporalio/cli/releases/download";

/** From this server version on, a cancel is pushed to the worker; before, it waits for the next heartbeat. */
export const PUSHED_CANCEL: readonly [major: number, minor: number] = [1, 32];

/** This machine, as the release names it: `linux_amd64`. */
export function platformName(platform: string = process.platform, arch: string = process.arch): string {
  return `${platform}_${arch === "x64" ? "amd64" : arch}`;
}

/** `https://…/v1.9.1/temporal_cli_1.9.1_linux_amd64.tar.gz` */
export function archiveUrl(base: string, version: string, platform: string): string {
  return `${base.replace(/\/+$/, "")}/v${version}/temporal_cli_${version}_${platform}.tar.gz`;
}
