# Takes OpenBLAS from the scipy-openblas32 wheel (a build requirement) and puts it, with its licence, into
# rushlight/_lib. It is opened with dlopen at the first matrix product and never linked, so that importing
# Rushlight does not pay for 22 MB of BLAS.

execute_process(
  COMMAND ${Python_EXECUTABLE} -c [[
import importlib.metadata, scipy_openblas32
licence = [f.locate() for f in importlib.metadata.files("scipy-openblas32") if f.name.startswith("LICENSE")]
print(scipy_openblas32.get_lib_dir(), licence[0], sep=";")
]]
  OUTPUT_VARIABLE found
  ERROR_VARIABLE why
  RESULT_VARIABLE failed
  OUTPUT_STRIP_TRAILING_WHITESPACE)
if(failed)
  message(FATAL_ERROR
    "OpenBLAS was not found: ${Python_EXECUTABLE} cannot import scipy_openblas32. "
    "Install it with: pip install scipy-openblas32\n${why}")
endif()
list(GET found 0 openblas_dir)
list(GET found 1 openblas_licence)

# Some builds of the wheel carry the Fortran run time as separate libraries next to OpenBLAS.
file(GLOB openblas_libraries
  ${openblas_dir}/libscipy_openblas*.so ${openblas_dir}/libscipy_openblas*.dylib
  ${openblas_dir}/libgfortran* ${openblas_dir}/libquadmath* ${openblas_dir}/libgcc_s*)
if(NOT openblas_libraries)
  message(FATAL_ERROR "No libscipy_openblas in ${openblas_dir}")
endif()

if(RUSHLIGHT_INPLACE)
  set(openblas_target ${CMAKE_SOURCE_DIR}/rushlight/_lib)
else()
  set(openblas_target ${CMAKE_BINARY_DIR}/_lib)
endif()
file(MAKE_DIRECTORY ${openblas_target})

foreach(library IN LISTS openblas_libraries)
  get_filename_component(name ${library} NAME)
  set(copy ${openblas_target}/${name})
  if(EXISTS ${copy} AND NOT ${library} IS_NEWER_THAN ${copy})
    continue()
  endif()
  file(COPY_FILE ${library} ${copy})
  # Nothing is thrown through OpenBLAS, so its unwind tables (2 MB) serve debuggers only, as symbols do. What is
  # left is kept if it is smaller (a library whose run path was edited can grow) and can be opened.
  set(unneeded --strip-unneeded)
  if(name MATCHES openblas)
    list(APPEND unneeded --remove-section .eh_frame --remove-section .eh_frame_hdr)
  endif()
  if(CMAKE_OBJCOPY)
    execute_process(COMMAND ${CMAKE_OBJCOPY} ${unneeded} ${copy} ${copy}.lean ERROR_QUIET)
    execute_process(COMMAND ${Python_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/without_tables.py ${copy}.lean
      RESULT_VARIABLE unusable ERROR_QUIET)
    if(NOT unusable)
      file(SIZE ${copy} size)
      file(SIZE ${copy}.lean lean_size)
      if(lean_size LESS size)
        file(COPY_FILE ${copy}.lean ${copy})
      endif()
    endif()
    file(REMOVE ${copy}.lean)
  endif()
endforeach()
file(COPY_FILE ${openblas_licence} ${openblas_target}/LICENSE-OpenBLAS.txt ONLY_IF_DIFFERENT)

if(NOT RUSHLIGHT_INPLACE)
  install(DIRECTORY ${openblas_target}/ DESTINATION rushlight/_lib
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endif()
