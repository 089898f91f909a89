# SPDX-License-Identifier: Apache-2.0
# CPack runs it before it packs: folders that it made itself have the caller's umask. Others are to use them, too.
file(CHMOD_RECURSE ${CPACK_TEMPORARY_INSTALL_DIRECTORY} DIRECTORY_PERMISSIONS
     OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
