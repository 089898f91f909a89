# SPDX-License-Identifier: Apache-2.0
# CPack reads it for each kind of package. A tarball unpacks into a folder of its own name; a .deb into /usr.
if(CPACK_GENERATOR STREQUAL "TGZ")
  set(CPACK_PACKAGING_INSTALL_PREFIX "/${CPACK_PACKAGE_FILE_NAME}")
endif()
