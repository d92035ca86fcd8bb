# shellcheck shell=sh
# Images: a registry's manifests and layers made into a squashfs file. Sourced by enroot.

HUB="registry-1.docker.io"
credentials='' tmp='' oci=''

# The whole of a value, which may hold a line break, against an extended regular expression.
matches() { printf '%s' "$1" | tr '\n' '\001' | grep -Eqx "$2"; }

# --- image references ---------------------------------------------------------------------------------------------

# docker://[USER@][REGISTRY#]IMAGE[:TAG][@DIGEST] into user, registry, image, tag. A slash may stand for the hash when
# what is before it has a dot or a port.
parse_uri() {
    case $1 in docker://*) ;; *) fail "Invalid argument: $1" ;; esac
    rest=${1#docker://}
    user='' digest='' tag=''
    case $rest in *@sha256:*) digest=sha256:${rest##*@sha256:} rest=${rest%@sha256:*} ;; esac
    case $rest in *@*) user=${rest%%@*} rest=${rest#*@} ;; esac
    case $rest in
    *'#'*) registry=${rest%%'#'*} rest=${rest#*'#'} ;;
    *.*/* | *:*/*) registry=${rest%%/*} rest=${rest#*/} ;;
    *) registry=$HUB ;;
    esac
    image=${rest%%:*}
    case $rest in *:*) tag=${rest#*:} ;; esac
    check_reference "$1"
    tag=${digest:-${tag:-latest}}
    case $registry in
    docker.io | index.docker.io | "$HUB")
        registry=$HUB
        case $image in */*) ;; *) image=library/$image ;; esac
        ;;
    esac
    if [ -s "$credentials" ] && [ -z "$user" ]; then
        user=$(awk -v host="${registry%:*}" '$1 == "machine" && $2 == host && $3 == "login" { print $4; exit }' "$credentials")
    fi
}

# A name on Docker Hub is let through as it is: curl refuses what is no part of a URL.
check_reference() {
    case $rest in
    */*) known='[a-z0-9/._-]+' ;;
    *) if [ "$registry" = "$HUB" ]; then known='[^/@#:]+'; else known='[a-z0-9/._-]+'; fi ;;
    esac
    if ! matches "$registry" '[^#/@]+' || ! matches "$image" "$known" || ! matches "${tag:-x}" '[A-Za-z0-9._:-]+'; then
        fail "Invalid image reference: $1"
    fi
}

# --- the registry --------------------------------------------------------------------------------------------------

status_text() {
    case $1 in
    400) echo 'Bad Request' ;; 401) echo Unauthorized ;; 403) echo Forbidden ;; 404) echo 'Not Found' ;;
    429) echo 'Too Many Requests' ;; 500) echo 'Internal Server Error' ;; 502) echo 'Bad Gateway' ;;
    503) echo 'Service Unavailable' ;; 504) echo 'Gateway Time-out' ;;
    esac
}

# The value is a secret: it goes from file to file and never into an argument list. "$NAME" and "$(command)" are expanded.
write_netrc() {
    awk -v host="${registry%:*}" -v user="$user" \
        '$1 == "machine" && $2 == host && $3 == "login" && $4 == user { sub(/^([^ \t]+[ \t]+)+password[ \t]+/, ""); print; exit }' \
        "$credentials" >"$tmp/secret"
    IFS= read -r secret <"$tmp/secret" || :
    case $secret in '$'*) eval "secret=\"$secret\"" ;; esac
    printf 'machine %s login %s password %s\n' "${registry%:*}" "$user" "$secret" >"$tmp/netrc"
    printf '{"auths":{"%s":{"auth":"%s"}}}\n' "$registry" "$(printf '%s:%s' "$user" "$secret" | base64 -w 0)" >"$tmp/auth.json"
    rm -f "$tmp/secret"
}

# Basic authentication that is refused ends without a word, as Enroot does: its message is lost in a pipe.
log_in() {
    info "Authenticating with user: ${user:-<anonymous>}"
    [ -n "$user" ] || exit 1
    if [ -f "$credentials" ] && grep -qs "^machine[[:space:]]\{1,\}${registry%:*}[[:space:]]\{1,\}login[[:space:]]\{1,\}${user}[[:space:]]" "$credentials"; then
        info "Using credentials from file: $credentials"
        write_netrc
        code=$(curl -sSL --netrc-file "$tmp/netrc" -o /dev/null -w '%{http_code}' -- "$1" 2>/dev/null) || exit 1
    else
        code=$(curl -sSL -u "$user:" -o /dev/null -w '%{http_code}' -- "$1" 2>/dev/null) || exit 1
    fi
    [ "$code" -lt 400 ] || exit 1
    info "Authentication succeeded"
}

# Asked without an Accept header, as Enroot does: a registry then hides OCI manifests.
authenticate() {
    url=http://$registry/v2/$image/manifests/$tag
    info "Querying registry for permission grant"
    code=$(curl -sSL --connect-timeout 30 -I -o "$tmp/headers" -w '%{http_code}' -- "$url") || exit $?
    if [ "$code" -ge 400 ] && [ "$code" -ne 401 ]; then
        fail "URL $url returned error code: $code $(status_text "$code")"
    fi
    printf '{}\n' >"$tmp/auth.json"
    if grep -qi '^www-authenticate:' "$tmp/headers"; then log_in "$url"; else info "Permission granted"; fi
}

# Layers go to the cache, under their digests, and stay there. skopeo fetches what is not there already.
download() {
    info "Fetching image manifest list"
    info "Fetching image manifest"
    case $tag in sha256:*) reference=$registry/$image@$tag ;; *) reference=$registry/$image:$tag ;; esac
    private_folder "$ENROOT_CACHE_PATH/sha256"
    ls "$ENROOT_CACHE_PATH/sha256" >"$tmp/cached"
    # On the cache's file system, too: what skopeo has fetched it renames.
    oci=$(mktemp -d "$ENROOT_CACHE_PATH/oci.XXXXXXXXXX")
    mkdir "$oci/blobs"
    ln -s ../../sha256 "$oci/blobs/sha256"
    if ! skopeo --insecure-policy --override-arch="$arch" copy -q --src-tls-verify=false --authfile "$tmp/auth.json" \
        "docker://$reference" "oci:$oci:image" 2>"$tmp/skopeo"; then
        cat "$tmp/skopeo" >&2
        exit 1
    fi
    rm -f "$tmp/auth.json" "$tmp/netrc"
    manifest=$(blob "$(jq -r '.manifests[0].digest' "$oci/index.json")")
    missing=$(jq -r '.layers[].digest | ltrimstr("sha256:")' "$manifest" | grep -Fvxc -f "$tmp/cached" || :)
    case $missing in 0) info "Found all layers in cache" ;; *) info "Downloading $missing missing layers..." ;; esac
}

# --- the file system -----------------------------------------------------------------------------------------------

blob() { printf '%s/blobs/%s' "$oci" "$(printf '%s' "$1" | tr ':' '/')"; }

# What Enroot makes of an image's configuration: ENV, LABEL, WORKDIR, ENTRYPOINT and CMD as files of the root file system.
configure() {
    root=$1 image_config=$2
    made_for=$(jq -r '.architecture // ""' "$image_config")
    if [ "$arch" != "$made_for" ]; then
        printf "[WARN] Image architecture doesn't match the requested one: %s != %s\n" "$made_for" "$arch" >&2
    fi
    mkdir -p "$root/etc"
    jq -r '.config.Volumes // {} | keys[] | "${ENROOT_ROOTFS}\(.) \(.) none x-create=dir,bind,rw,nosuid,nodev"' "$image_config" >"$root/etc/fstab"
    jq -r '.config.Env // [] | .[]' "$image_config" >"$root/etc/environment"
    workdir=$(jq -r '.config.WorkingDir // "" | if . == "" then "/" else . end' "$image_config")
    mkdir -p "$root/$workdir"
    {
        printf '# enroot-provenance: docker://%s#%s:%s\n' "$registry" "$image" "$tag"
        jq -r '.config.Labels // {} | to_entries[] | "# \(.key) \(.value | gsub("\n"; " "))"' "$image_config"
        entrypoint=$(jq -r '.config.Entrypoint // [] | map(@sh + " ") | add // ""' "$image_config")
        command=$(jq -r 'if (.config.Entrypoint // []) + (.config.Cmd // []) == [] then ["/bin/sh"] else .config.Cmd // [] end | @sh' "$image_config")
        printf '\nmkdir -p "%s" 2> /dev/null\ncd "%s" && unset OLDPWD || exit 1\n\n' "$workdir" "$workdir"
        printf 'if [ -s /etc/rc.local ]; then\n    . /etc/rc.local\nfi\n\n'
        printf 'if [ $# -gt 0 ]; then\n    exec %s"$@"\nelse\n    exec %s%s\nfi\n' "$entrypoint" "$entrypoint" "$command"
    } >"$root/etc/rc"
    printf '# This file is sourced by /etc/rc when the container starts.\n' >"$root/etc/rc.local"
}

build() {
    info "Extracting image layers..."
    umoci --log=error unpack --rootless --image "$oci:image" "$tmp/bundle" >&2
    info "Converting whiteouts..."
    configure "$tmp/bundle/rootfs" "$(blob "$(jq -r .config.digest "$manifest")")"
    info "Creating squashfs filesystem..."
    # shellcheck disable=SC2086 # a list of options
    mksquashfs "$tmp/bundle/rootfs" "$output" -all-root -no-progress -processors "$ENROOT_MAX_PROCESSORS" \
        $ENROOT_SQUASH_OPTIONS >&2
}

# --- the command ---------------------------------------------------------------------------------------------------

debian_arch() {
    case $1 in
    x86_64) printf amd64 ;;
    aarch64) printf arm64 ;;
    ppc64le) printf ppc64le ;;
    *) fail "Unsupported architecture: $1" ;;
    esac
}

run_import() {
    output='' arch=''
    while [ $# -gt 0 ]; do
        case $1 in
        -a | --arch) [ -n "${2-}" ] || usage import 1; arch=$2; shift 2 ;;
        --arch=?*) arch=${1#*=}; shift ;;
        -o | --output) [ -n "${2-}" ] || usage import 1; output=$2; shift 2 ;;
        --output=?*) output=${1#*=}; shift ;;
        -h | --help) usage import 0 ;;
        --) shift; break ;;
        -?*) usage import 1 ;;
        *) break ;;
        esac
    done
    [ $# -eq 1 ] || usage import 1
    credentials=$ENROOT_CONFIG_PATH/.credentials
    parse_uri "$1"
    arch=$(debian_arch "${arch:-$(uname -m)}")
    [ -n "$output" ] || output=$(printf '%s' "${image#library/}+$tag.sqsh" | tr '/' '+')
    output=$(real_path "$output")
    [ ! -e "$output" ] || fail "File already exists: $output"
    trap 'chmod -R u+rwX "$tmp" 2>/dev/null; rm -rf "$tmp" "$oci"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    tmp=$(umask 077 && mktemp -d "$ENROOT_TEMP_PATH/enroot.XXXXXXXXXX")
    mask=$(umask)
    umask 077
    authenticate
    download
    umask "$mask"
    build
}
